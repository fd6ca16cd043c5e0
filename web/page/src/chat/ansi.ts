// The colours of terminal output as classes; every other control sequence is left out.

export interface Span {
  text: string;
  classes: string;
}

const CONTROL = /\x1b\[([0-9;:?]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

export function ansiSpans(text: string): Span[] {
  const spans: Span[] = [];
  let classes = new Set<string>();
  let from = 0;
  const put = (to: number) => {
    if (to > from) spans.push({ text: text.slice(from, to), classes: [...classes].join(" ") });
  };
  for (const found of text.matchAll(CONTROL)) {
    put(found.index);
    from = found.index + found[0].length;
    if (found[2] === "m") classes = styled(classes, found[1] ?? "");
  }
  put(text.length);
  return spans;
}

function styled(before: Set<string>, codes: string): Set<string> {
  const classes = new Set(before);
  const colour = (name: string) => {
    for (const one of [...classes]) if (one.startsWith("ansi-c")) classes.delete(one);
    if (name !== "") classes.add(name);
  };
  const numbers = codes.split(/[;:]/).map((code) => Number(code || "0"));
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) classes.clear();
    else if (code === 1) classes.add("ansi-bold");
    else if (code === 2) classes.add("ansi-dim");
    else if (code === 22) {
      classes.delete("ansi-bold");
      classes.delete("ansi-dim");
    } else if (code >= 30 && code <= 37) colour(`ansi-c${code - 30}`);
    else if (code >= 90 && code <= 97) colour(`ansi-c${code - 90}`);
    else if (code === 39) colour("");
    // Colours by number or by parts are left out, and their parts with them.
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
  }
  return classes;
}
