function save(address: string, name: string) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

/** Lets the browser keep a text as a file. */
export function saveFile(name: string, content: BlobPart, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  save(address, name);
  URL.revokeObjectURL(address);
}

/** Lets the browser keep what the server has at an address; the server names the file. */
export const saveAddress = (address: string) => save(address, "");
