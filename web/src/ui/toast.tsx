// SPDX-License-Identifier: Apache-2.0
// A word at the foot of the page that goes away by itself.
import { useEffect, useState } from "preact/hooks";

let show: (text: string) => void = () => {};

export function toast(text: string): void {
    show(text);
}

export function Toasts() {
    const [text, setText] = useState("");
    useEffect(() => {
        let timer = 0;
        show = (said) => {
            setText(said);
            clearTimeout(timer);
            timer = window.setTimeout(() => setText(""), 2500);
        };
    }, []);
    return <div role="status">{text && <div class="toast">{text}</div>}</div>;
}
