// The page begins: takes the key out of the address first of all, then connects and draws.

import { render } from "preact";
import { App } from "./App.js";
import { connect } from "./gateway.js";
import "./theme.js";
import "./style/index.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
connect();
