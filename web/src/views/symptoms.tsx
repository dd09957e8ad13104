// SPDX-License-Identifier: Apache-2.0
import { Empty } from "../ui/kit";

export function Symptoms() {
    return <Empty title="Symptoms" />;
}
