// SPDX-License-Identifier: Apache-2.0
import { Empty } from "../ui/kit";

export function Explore() {
    return <Empty title="Explore" />;
}
