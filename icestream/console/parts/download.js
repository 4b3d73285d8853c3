/** Files for the user's disk, made in the page. */

/** @param {string} name @param {Blob} content */
export function download(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
