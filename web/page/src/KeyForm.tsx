// Asks for the key, when the address did not bring one.

import { useState } from "preact/hooks";
import mark from "./favicon.svg";
import { focused } from "./focus.js";
import { refusal, useKey } from "./gateway.js";

export function KeyForm() {
  const [given, setGiven] = useState("");
  return (
    <main class="entry">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (given.trim() !== "") useKey(given.trim());
        }}
      >
        <img src={mark} alt="" width={44} height={44} />
        <h1>gembridge</h1>
        <p>
          Enter the gateway's key. <code>gembridge serve</code> prints it when it first starts, and each time says in which file it lies.
        </p>
        {refusal.value !== undefined && (
          <p class="state failed" role="alert">
            {refusal.value}
          </p>
        )}
        <label>
          <span>Key</span>
          <input type="password" autoComplete="off" ref={focused} spellcheck={false} value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          Connect
        </button>
      </form>
    </main>
  );
}
