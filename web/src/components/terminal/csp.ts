// SECURITY: the policy of this page allows no style attributes. xterm sets them by setAttribute(), for colours
// that are not of its palette and for its correction of contrast; they would be lost. The same text given to
// the style object is allowed: only a script can do that, never a piece of markup.
const set = Element.prototype.setAttribute;

Element.prototype.setAttribute = function (name: string, value: string) {
  if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
  else set.call(this, name, value);
};
