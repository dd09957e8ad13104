// SPDX-License-Identifier: Apache-2.0
// Long lists of which only what is seen is made of elements.
import { useEffect, useRef, useState } from "preact/hooks";

const MORE = 8; // rows drawn beyond what is seen

// The part of a long list that is seen: its scroller, first row and how many.
export function useWindow(n: number, height: number) {
    const box = useRef<HTMLDivElement>(null);
    const [seen, setSeen] = useState({ top: 0, high: 600 });
    useEffect(() => {
        const measure = () => box.current && setSeen({ top: box.current.scrollTop, high: box.current.clientHeight });
        const watch = new ResizeObserver(measure);
        watch.observe(box.current!);
        measure();
        return () => watch.disconnect();
    }, []);
    const first = Math.max(0, Math.min(n - 1, Math.floor(seen.top / height)) - MORE);
    const last = Math.min(n, Math.ceil((seen.top + seen.high) / height) + MORE);
    const onScroll = () => setSeen({ top: box.current!.scrollTop, high: box.current!.clientHeight });
    const reveal = (i: number, head: number) => {
        const at = box.current!;
        if (i * height < at.scrollTop) at.scrollTop = i * height;
        else if ((i + 1) * height + head > at.scrollTop + at.clientHeight) at.scrollTop = (i + 1) * height + head - at.clientHeight;
    };
    return { box, first, last, onScroll, reveal };
}
