// SECURITY: the policy of this page allows only style elements that carry the nonce of this answer.
// Libraries that make such elements (terminal, toasts, dialogs) know nothing of it, so it is put on here.
const nonce = document.querySelector<HTMLMetaElement>("meta[name=style-nonce]")?.content ?? "";
const create = document.createElement.bind(document);

document.createElement = ((name: string, options?: ElementCreationOptions) => {
  const element = create(name, options);
  if (nonce && name.toLowerCase() === "style") element.nonce = nonce;
  return element;
}) as typeof document.createElement;
