// Which agent, which model, which mode.

import type { Choice } from "@gembridge/client";
import { agent, agents, chat, current, report, summary, tick, wishedAgent, wishedModel } from "../gateway.js";

export function Choosers() {
  tick.value;
  const session = current.value;
  const models = session && session.models.available.length > 0 ? session.models.available : (agent.value?.models ?? []);
  const modes = session && session.modes.available.length > 0 ? session.modes.available : (agent.value?.modes ?? []);
  const model = session ? (session.models.current ?? summary.value?.model ?? undefined) : wishedModel.value;
  const mode = session?.modes.current ?? summary.value?.mode ?? undefined;
  return (
    <div class="choosers">
      {!session && agents.value.length > 1 && (
        <Chooser
          label="Agent"
          choices={agents.value.map(({ name, title }) => ({ id: name, name: title }))}
          chosen={agent.value?.name}
          choose={(name) => {
            wishedAgent.value = name;
            wishedModel.value = undefined;
          }}
        />
      )}
      <Chooser
        label="Model"
        choices={models}
        chosen={model}
        choose={(id) => {
          if (session) chat().setModel(session.id, id).catch(report);
          else wishedModel.value = id;
        }}
      />
      {session && <Chooser label="Mode" choices={modes} chosen={mode} choose={(id) => void chat().setMode(session.id, id).catch(report)} />}
    </div>
  );
}

interface ChooserProps {
  label: string;
  choices: Choice[];
  chosen: string | undefined;
  choose: (id: string) => void;
}

function Chooser({ label, choices, chosen, choose }: ChooserProps) {
  if (choices.length === 0) return null;
  const known = choices.some(({ id }) => id === chosen);
  return (
    <select
      class="chooser"
      aria-label={label}
      title={`${label}: ${choices.find(({ id }) => id === chosen)?.description ?? chosen ?? "the agent's default"}`}
      value={chosen ?? ""}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {!known && <option value={chosen ?? ""}>{chosen ?? `${label}: default`}</option>}
      {choices.map(({ id, name, description }) => (
        <option value={id} title={description}>
          {name}
        </option>
      ))}
    </select>
  );
}
