// Says that a question waits for somebody who looks elsewhere: in the title, on the icon of the tab, and by the system where it may.

import { signal } from "@preact/signals";
import mark from "./favicon.svg";

/** Whether the system may show that a question waits. */
export const notices = signal<NotificationPermission | "unsupported">(typeof Notification === "undefined" ? "unsupported" : Notification.permission);

/** Asks whoever uses the page; browsers ask only where something was clicked. */
export async function allowNotices(): Promise<void> {
  if (notices.value === "default") notices.value = await Notification.requestPermission();
}

const BADGED =
  "data:image/svg+xml," +
  encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#4f5bd5"/>' +
      '<path d="M6 21c3-8 6-11 10-11s7 3 10 11M6 21h20" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/>' +
      '<circle cx="24" cy="8" r="7.500" fill="#e5484d" stroke="#fff" stroke-width="1.500"/></svg>',
  );

let shown: Notification | undefined;

/** So many questions wait now, and so many did before. */
export function showWaiting(waiting: number, before: number, title: string): void {
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title}`;
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon) icon.href = waiting > 0 ? BADGED : mark;
  if (waiting === 0) shown?.close();
  if (waiting <= before || !document.hidden || notices.value !== "granted") return;
  shown?.close();
  // What is asked stands on the page alone: others may see the screen.
  shown = new Notification("gembridge", {
    body: waiting === 1 ? "The agent waits for your answer." : `${waiting} questions wait for your answer.`,
    tag: "ask",
  });
  shown.onclick = () => {
    window.focus();
    shown?.close();
  };
}
