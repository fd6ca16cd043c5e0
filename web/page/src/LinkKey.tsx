// What a person is asked and told when a link brings a key.

import mark from "./favicon.svg";
import { focused } from "./focus.js";
import { answerLinkKey, linkKey, signOut } from "./gateway.js";
import { Icon } from "./icons.js";

/** The link's key differs from the tab's: nothing happens before a person has chosen. */
export function LinkKeyQuestion() {
  return (
    <main class="entry">
      <div class="box" role="alertdialog" aria-labelledby="link-key-title" aria-describedby="link-key-text">
        <img src={mark} alt="" width={44} height={44} />
        <h1 id="link-key-title">Change the key?</h1>
        <p id="link-key-text">
          This link brings another key than the one this tab is signed in with. If you use it, you see and continue the sessions of that key, and whoever else
          has it can read what you write. Use it only if you know who made the link.
        </p>
        <button type="button" class="primary" ref={focused} onClick={() => answerLinkKey("keep")}>
          Stay signed in as before
        </button>
        <button type="button" onClick={() => answerLinkKey("use")}>
          Use the key of the link
        </button>
      </div>
    </main>
  );
}

/** The tab had no key and now has the link's: said until it is dismissed. */
export function LinkKeyNotice() {
  return (
    <p class="link-key" role="status">
      <span>Signed in with the key of the link you followed. Whoever else has this key can read what you write here.</span>
      <button type="button" class="quiet" onClick={signOut}>
        Sign out
      </button>
      <button type="button" class="round small" aria-label="Dismiss the note about the key" onClick={() => (linkKey.value = { state: "none" })}>
        <Icon name="close" size={14} />
      </button>
    </p>
  );
}
