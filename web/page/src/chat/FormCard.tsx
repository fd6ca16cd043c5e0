// The agent asks for some facts: a form made from its schema.

import type { FormAsk, Json } from "@gembridge/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { chat } from "../gateway.js";
import { unmasked } from "../words.js";
import { Countdown } from "./Countdown.js";
import { handFocusBack } from "./focus.js";

interface Field {
  type?: string;
  title?: string;
  description?: string;
  enum?: string[];
  oneOf?: { const: string; title?: string }[];
  default?: Json;
}

interface Schema {
  properties?: Record<string, Field>;
  required?: string[];
}

export function FormCard({ ask }: { ask: FormAsk }) {
  const { properties = {}, required = [] } = ask.schema as Schema;
  const card = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const shown = card.current;
    return () => handFocusBack(shown);
  }, [ask.id]);
  const [values, setValues] = useState<Record<string, Json>>(() => defaults(properties));
  const put = (name: string, value: Json) => setValues({ ...values, [name]: value });
  return (
    <form
      ref={card}
      class="ask"
      aria-label="The agent asks"
      onSubmit={(event) => {
        event.preventDefault();
        chat().answer(ask.sessionId, ask.id, { action: "accept", content: values });
      }}
    >
      <header>
        <h2>{unmasked(ask.message)}</h2>
        {ask.expiresAt !== undefined && <Countdown until={ask.expiresAt} from={ask.at} />}
      </header>
      <div class="fields">
        {Object.entries(properties).map(([name, field]) => (
          <label class={field.type === "boolean" ? "row" : ""}>
            <span>{unmasked(field.title ?? name)}</span>
            <Input name={name} field={field} value={values[name]} required={required.includes(name)} put={put} />
            {field.description !== undefined && <span class="hint">{unmasked(field.description)}</span>}
          </label>
        ))}
      </div>
      <div class="answers">
        <button type="button" class="reject" disabled={ask.answered} onClick={() => chat().answer(ask.sessionId, ask.id, { action: "decline" })}>
          Decline
        </button>
        <button type="submit" class="allow" disabled={ask.answered}>
          Send
        </button>
      </div>
    </form>
  );
}

interface InputProps {
  name: string;
  field: Field;
  value: Json | undefined;
  required: boolean;
  put: (name: string, value: Json) => void;
}

function Input({ name, field, value, required, put }: InputProps) {
  const choices = field.oneOf?.map(({ const: id, title }) => ({ id, title: title ?? id })) ?? field.enum?.map((id) => ({ id, title: id }));
  if (choices) {
    return (
      <select required={required} value={String(value ?? "")} onChange={(event) => put(name, event.currentTarget.value)}>
        {!required && <option value="" />}
        {choices.map(({ id, title }) => (
          <option value={id}>{unmasked(title)}</option>
        ))}
      </select>
    );
  }
  if (field.type === "boolean") return <input type="checkbox" checked={value === true} onChange={(event) => put(name, event.currentTarget.checked)} />;
  if (field.type === "number" || field.type === "integer") {
    const step = field.type === "number" ? "any" : 1;
    return (
      <input type="number" step={step} required={required} value={String(value ?? "")} onInput={(event) => put(name, event.currentTarget.valueAsNumber)} />
    );
  }
  return <input type="text" required={required} value={String(value ?? "")} onInput={(event) => put(name, event.currentTarget.value)} />;
}

function defaults(properties: Record<string, Field>): Record<string, Json> {
  const values: Record<string, Json> = {};
  for (const [name, field] of Object.entries(properties)) {
    const first = field.oneOf?.[0]?.const ?? field.enum?.[0];
    if (field.default !== undefined) values[name] = field.default;
    else if (first !== undefined) values[name] = first;
    else if (field.type === "boolean") values[name] = false;
  }
  return values;
}
