// Before the first paint, so that nobody sees the wrong theme flash by.
(() => {
  const chosen = localStorage.getItem("caisson-theme");
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
})();

// A browser drops what it loads when a network link of its machine comes or goes, as links of sandboxes do where
// it runs beside the server. A page without its style or script is loaded again, once in five seconds.
addEventListener(
  "error",
  ({ target }) => {
    if (!(target instanceof HTMLLinkElement || target instanceof HTMLScriptElement)) return;
    const last = Number(sessionStorage.getItem("caisson-reloaded"));
    if (Date.now() - last < 5000) return;
    sessionStorage.setItem("caisson-reloaded", String(Date.now()));
    location.reload();
  },
  true,
);
