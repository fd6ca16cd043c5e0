// The keys: made, shown once, revoked.

import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../gateway.js";
import { copy } from "../markdown/code.js";
import { createKey, keys, revokeKey, type Key } from "./api.js";

export function Keys() {
  const [list, setList] = useState<Key[]>();
  const [name, setName] = useState("");
  const [rank, setRank] = useState<Key["rank"]>("user");
  const [made, setMade] = useState<{ name: string; secret: string }>();
  const [sure, setSure] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const failed = (error: unknown) => setFailure(messageOf(error));
  const load = () => keys().then(setList).catch(failed);
  useEffect(() => void load(), []);
  const create = (event: Event) => {
    event.preventDefault();
    createKey(name.trim(), rank)
      .then(({ name, key }) => {
        setMade({ name, secret: key });
        setName("");
        setRank("user");
        setFailure(undefined);
        return load();
      })
      .catch(failed);
  };
  const revoke = (name: string) => {
    if (sure !== name) return setSure(name);
    setSure(undefined);
    revokeKey(name).then(load).catch(failed);
  };
  return (
    <section aria-label="Keys">
      <h2>Keys</h2>
      <div class="panel">
        {failure !== undefined && (
          <p class="state failed" role="alert">
            {failure}
          </p>
        )}
        <ul class="rows">
          {list?.map((key) => (
            <li>
              <code>{key.name}</code>
              {key.rank === "admin" && <span class="tag">admin</span>}
              <span class="hint">since {new Date(key.createdAt).toLocaleDateString()}</span>
              <button type="button" class="quiet" onClick={() => revoke(key.name)} onBlur={() => setSure(undefined)} aria-label={`Revoke ${key.name}`}>
                {sure === key.name ? "Really revoke?" : "Revoke"}
              </button>
            </li>
          ))}
        </ul>
        {made && (
          <p class="secret" role="status">
            <span>
              The key <strong>{made.name}</strong>, shown this once:
            </span>
            <code>{made.secret}</code>
            <button type="button" onClick={(event) => void copy(made.secret, event.currentTarget)}>
              Copy
            </button>
          </p>
        )}
        <form class="inline" onSubmit={create}>
          <input
            required
            aria-label="Name of the new key"
            placeholder="Name, such as the program's"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <select aria-label="What the key may do" value={rank} onChange={(event) => setRank(event.currentTarget.value as Key["rank"])}>
            <option value="user">Chat</option>
            <option value="admin">Chat and administer</option>
          </select>
          <button type="submit">Create key</button>
        </form>
      </div>
    </section>
  );
}
