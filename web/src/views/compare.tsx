// SPDX-License-Identifier: Apache-2.0
import { Empty } from "../ui/kit";

export function Compare() {
    return <Empty title="Compare" />;
}
