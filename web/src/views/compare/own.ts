// SPDX-License-Identifier: Apache-2.0
// Own code, as far as a file's path tells.
import type { Tree } from "../../model/tree";

export const isOwn = (tree: Tree, name: number) =>
    !!tree.files[name] && tree.kinds[name] !== "kernel" && !/node_modules|site-packages|^node:|^<|^\/usr\//.test(tree.files[name]);
