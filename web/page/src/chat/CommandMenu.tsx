// The agent's slash commands, as far as they match what is being written.

import type { CommandInfo } from "@gembridge/client";
import { unmasked } from "../words.js";

const MOST = 8;

export function matching(commands: CommandInfo[], text: string): CommandInfo[] {
  const begun = /^\/(\S*)$/.exec(text)?.[1]?.toLowerCase();
  if (begun === undefined) return [];
  return commands.filter(({ name }) => name.toLowerCase().startsWith(begun)).slice(0, MOST);
}

export function CommandMenu({ commands, chosen, choose }: { commands: CommandInfo[]; chosen: number; choose: (command: CommandInfo) => void }) {
  return (
    <ul class="commands" id="commands" role="listbox" aria-label="Commands">
      {commands.map((command, at) => (
        <li
          id={`command-${at}`}
          role="option"
          aria-selected={at === chosen}
          onMouseDown={(event) => {
            event.preventDefault();
            choose(command);
          }}
        >
          <code>/{unmasked(command.name)}</code>
          {command.input?.hint && <span class="argument">{unmasked(command.input.hint)}</span>}
          <span class="hint">{unmasked(command.description)}</span>
        </li>
      ))}
    </ul>
  );
}
