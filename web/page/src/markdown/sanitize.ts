// Markdown to HTML that cannot act: HTML in the text stays text, links lead out, images of others are links.

import createDOMPurify from "dompurify";
import { Marked } from "marked";
import { unmasked } from "../words.js";

const OUTWARD = /^(https?|mailto):/i;
const OWN_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;

const escape = (text: string) => text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }) => escape(text),
    image({ href, text }) {
      if (OWN_IMAGE.test(href)) return `<img src="${escape(href)}" alt="${escape(text)}">`;
      return `<a href="${escape(href)}">${escape(text || "image")} ↗</a>`;
    },
  },
});

const purify = createDOMPurify(window);
let spans = false;
const TAGS = "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i img input li ol p pre s span strong sub sup table tbody td th thead tr ul".split(" ");

purify.addHook("afterSanitizeAttributes", (node) => {
  // The name of a code block's language is the only class that the text may give.
  if (!/^language-[\w+#.-]+$/.test(node.getAttribute("class") ?? "") && !spans) node.removeAttribute("class");
  if (node.tagName === "A") outward(node);
  if (node.tagName === "IMG" && !OWN_IMAGE.test(node.getAttribute("src") ?? "")) node.remove();
  // The only input is the box of a task list.
  if (node.tagName === "INPUT") {
    if (node.getAttribute("type") !== "checkbox") node.remove();
    else node.setAttribute("disabled", "");
    node.setAttribute("aria-label", node.hasAttribute("checked") ? "done" : "to do");
  }
});

/** Only links that leave the page for the web, in a tab of their own, stay links. */
function outward(node: Element): void {
  const href = node.getAttribute("href") ?? "";
  if (!OUTWARD.test(href)) return node.removeAttribute("href");
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("title", href);
}

/** The elements of a piece of markdown. */
export function elementsOf(raw: string): DocumentFragment {
  const html = marked.parse(unmasked(raw), { async: false }) as string;
  return purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "src", "alt", "align", "start", "type", "checked", "disabled", "class"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** What the highlighter made: nothing but spans with classes of its own. */
export function spansOf(html: string): DocumentFragment {
  spans = true;
  try {
    return purify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true });
  } finally {
    spans = false;
  }
}
