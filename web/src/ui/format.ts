export const MB = 1024 * 1024;

/** In steps of 1024, as memory and disks of sandboxes are given. */
export function bytes(count: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1).replace(".0", "") : Math.round(value)} ${units[unit]}`;
}

/** Small amounts need more digits; the smallest are told as such. */
export function dollars(amount: number): string {
  if (amount > 0 && amount < 0.0001) return "< $0.0001";
  return `$${amount.toFixed(amount !== 0 && amount < 0.1 ? 4 : 2)}`;
}

/** "owner/name" of a repository's address. */
export const repoName = (url: string) => url.replace(/^https?:\/\/[^/]+\//, "").replace(/\.git$/, "");

/** An address that may be a link: only http and https are. */
export const safeLink = (url: string) => (/^https?:\/\//.test(url) ? url : undefined);

/** The address of a pull request or of what belongs to one: a link only at GitHub, or at what stands for it here
 * (`forge`); by plain http only if that does not speak https. */
export function forgeLink(url: string, forge: string) {
  if (!safeLink(url) || !URL.canParse(url)) return undefined;
  const places = [forge, "https://github.com"].filter((place) => URL.canParse(place)).map((place) => new URL(place).origin);
  return places.includes(new URL(url).origin) ? url : undefined;
}

/** "in progress" → "In progress". */
export const capitalized = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

export const plural = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
