// SPDX-License-Identifier: Apache-2.0
// A dialog over the page: Escape and a click beside it close it; the browser keeps the focus inside.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Dialog(props: { label: string; class?: string; onClose: () => void; children: ComponentChildren }) {
    const box = useRef<HTMLDialogElement>(null);
    useLayoutEffect(() => {
        const dialog = box.current!;
        dialog.showModal();
        return () => dialog.close(); // gives the focus back
    }, []);
    return (
        <dialog
            ref={box}
            class={`dialog ${props.class ?? ""}`}
            aria-label={props.label}
            onClose={() => box.current && props.onClose()} // the event comes late: another dialog may be open by then
            onClick={(event) => event.target === box.current && props.onClose()}
        >
            {props.children}
        </dialog>
    );
}
