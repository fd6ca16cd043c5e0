// Markdown as a component around the view that draws it.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { MarkdownView } from "./view.js";

export function Markdown({ text, finished }: { text: string; finished: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  const view = useRef<MarkdownView | undefined>(undefined);
  useLayoutEffect(() => {
    if (root.current) view.current ??= new MarkdownView(root.current);
    view.current?.update(text, finished);
  }, [text, finished]);
  useEffect(() => () => view.current?.dispose(), []);
  return <div class="prose" ref={root} />;
}
