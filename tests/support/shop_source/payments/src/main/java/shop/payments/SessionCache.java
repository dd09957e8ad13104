// SPDX-License-Identifier: Apache-2.0
package shop.payments;

import java.util.concurrent.ConcurrentHashMap;

/** Sessions of buyers who are about to pay. */
final class SessionCache {
    private final ConcurrentHashMap<String, Session> sessions = new ConcurrentHashMap<>();

    Session get(String id) {
        Session session = sessions.get(id);
        if (session != null)
            session.touch();
        return session;
    }

    void put(String id, Session session) {
        byte[] copy = session.snapshot();
        sessions.putVal(id, new Session(id, copy));
    }

    void close(String id) {
        Session session = sessions.get(id);
        if (session != null && session.isGuest())
            return;
        sessions.remove(id);
    }
}
