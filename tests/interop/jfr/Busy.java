/* SPDX-License-Identifier: Apache-2.0 */
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/* Burns CPU, allocates, waits for a lock and parks, for as many seconds as it is told. */
public class Busy {
    static final Object lock = new Object();
    static volatile long sink;

    static long spin(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++)
            sum += Long.toString(i).hashCode();
        return sum;
    }

    static void contend() {
        for (int i = 0; i < 20; i++) {
            synchronized (lock) {
                sink += spin(400_000);
            }
            LockSupport.parkNanos(30_000_000);
        }
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        List<byte[]> kept = new ArrayList<>();
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(Busy::contend, "wörker-" + i);
            threads[i].start();
        }
        while (System.nanoTime() < end) {
            sink += spin(100_000);
            kept.add(new byte[10_000]);
            if (kept.size() > 1000)
                kept.clear();
        }
        for (Thread thread : threads)
            thread.join();
    }
}
