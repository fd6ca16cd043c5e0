// Pictures that a prompt takes along, within what a message may weigh.

import type { Image } from "@gembridge/client";

export const MAX_IMAGES = 6;
const MAX_BYTES = 4 * 1024 * 1024;
const KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"];
export const ACCEPT = KINDS.join(",");

/** Reads the pictures among `files`; throws with the reason when one cannot be taken along. */
export async function readImages(files: Iterable<File>): Promise<Image[]> {
  const images: Image[] = [];
  for (const file of files) {
    if (!KINDS.includes(file.type)) throw new Error(`\`${file.name}\` cannot be taken along; send pictures as PNG, JPEG, GIF or WebP`);
    if (file.size > MAX_BYTES) throw new Error(`\`${file.name}\` has more than 4 MB; send a smaller one`);
    images.push({ mimeType: file.type, data: await base64(file) });
  }
  return images;
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error(`\`${file.name}\` could not be read`));
    reader.readAsDataURL(file);
  });
}
