// How times, counts and texts are said to people.

/** Characters that make text read in another order than it stands. Shown by name where a person decides by what they read. */
const REORDERING = /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;

export function unmasked(text: string): string {
  return text.replace(REORDERING, (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase()}⟩`);
}

/** A path as seen from the folder that the agent works in. */
export function within(folder: string | undefined, path: string): string {
  const inside = folder !== undefined && folder !== "/" && path.startsWith(`${folder.replace(/\/$/, "")}/`);
  return inside ? path.slice(folder.replace(/\/$/, "").length + 1) : path;
}

export function duration(ms: number): string {
  if (ms < 950) return `${Math.max(0.1, Math.round(ms / 100) / 10)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function count(value: number): string {
  if (value < 1000) return String(value);
  if (value < 999_500) return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} k`;
  return `${(value / 1_000_000).toFixed(1)} M`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}

/** The heading under which something of that time stands in a list. */
export function day(iso: string, now = new Date()): string {
  const then = new Date(iso);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const days = Math.ceil((midnight - then.getTime()) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "This week";
  return then.toLocaleDateString(undefined, { year: "numeric", month: "long" });
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

export function bytes(kb: number): string {
  return kb < 1024 ? `${kb} kB` : `${Math.round(kb / 1024)} MB`;
}

/** An amount of money, with more digits where it is small. */
export function money({ amount, currency }: { amount: number; currency: string }): string {
  const maximumFractionDigits = amount > 0 && amount < 0.01 ? 4 : 2;
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits }).format(amount);
  } catch {
    // No currency that the browser knows.
    return `${amount.toFixed(maximumFractionDigits)} ${currency}`;
  }
}
