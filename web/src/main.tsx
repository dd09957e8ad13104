// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import "./style/tokens.css";
import "./style/base.css";
import "./style/kit.css";
import "./style/shell.css";
import { App } from "./app";
import { startDrop } from "./shell/drop";
import { startPlace } from "./state/place";
import { startSession } from "./state/session";
import { startKeys } from "./ui/keys";
import { startTheme } from "./ui/theme";

startTheme();
startPlace();
startKeys();
startSession();
startDrop();
render(<App />, document.getElementById("app")!);
