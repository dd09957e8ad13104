// SPDX-License-Identifier: Apache-2.0
import { Empty } from "../ui/kit";

export function Status() {
    return <Empty title="Status" />;
}
