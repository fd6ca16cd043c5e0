// Token counts, from the several shapes in which agents and the gateway tell them.

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  thoughtTokens?: number;
  cachedTokens?: number;
  totalTokens?: number;
  /** How much of the agent's context is taken, and how large it is. */
  contextUsed?: number;
  contextSize?: number;
  cost?: { amount: number; currency: string };
}

const MEMBERS: [keyof Usage & string, string[]][] = [
  ["inputTokens", ["inputTokens", "input_tokens", "promptTokens"]],
  ["outputTokens", ["outputTokens", "output_tokens", "completionTokens"]],
  ["thoughtTokens", ["thoughtTokens", "thought_tokens", "reasoningTokens"]],
  ["cachedTokens", ["cachedReadTokens", "cachedTokens", "cached_tokens"]],
  ["totalTokens", ["totalTokens", "total_tokens"]],
  ["contextUsed", ["used"]],
  ["contextSize", ["size"]],
];

/** Reads counts out of `source`; undefined when there are none. */
export function readUsage(source: unknown): Usage | undefined {
  if (typeof source !== "object" || source === null) return undefined;
  const from = source as Record<string, unknown>;
  const usage: Record<string, unknown> = {};
  for (const [member, names] of MEMBERS) {
    const name = names.find((candidate) => typeof from[candidate] === "number");
    if (name !== undefined) usage[member] = from[name];
  }
  const cost = from["cost"] as { amount?: unknown; currency?: unknown } | null | undefined;
  if (typeof cost?.amount === "number" && typeof cost.currency === "string") usage["cost"] = cost;
  return Object.keys(usage).length > 0 ? (usage as Usage) : undefined;
}
