// SPDX-License-Identifier: Apache-2.0
// Names that fit into a table or a sentence; the whole name is in the title beside it.
import { shortName } from "../../model/family";

const SENTENCE = 44;

// The name as it is, or without its packages and arguments.
export const named = (name: string, most = 28) => (name.length <= most ? name : shortName(name));

export function inSentence(name: string): string {
    const short = named(name, SENTENCE);
    return short.length <= SENTENCE ? short : `${short.slice(0, SENTENCE - 1)}…`;
}
