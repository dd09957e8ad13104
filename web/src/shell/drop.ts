// SPDX-License-Identifier: Apache-2.0
// A file that is dropped anywhere on the page is opened.
import { chooseFile } from "../state/file";
import { linkTo, open } from "../state/place";

const hasFile = (event: DragEvent) => [...(event.dataTransfer?.types ?? [])].includes("Files");

export function startDrop(): void {
    const mark = (on: boolean) => document.documentElement.toggleAttribute("data-dropping", on);
    addEventListener("dragover", (event) => {
        if (!hasFile(event)) return;
        event.preventDefault();
        mark(true);
    });
    addEventListener("dragleave", (event) => !event.relatedTarget && mark(false));
    addEventListener("drop", (event) => {
        mark(false);
        const dropped = event.dataTransfer?.files[0];
        if (!dropped) return;
        event.preventDefault();
        chooseFile(dropped);
        open(linkTo("file", {}, []));
    });
}
