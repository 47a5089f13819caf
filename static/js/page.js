// What pages do better with a script; everything works without it.

const YEAR_SECONDS = 365 * 24 * 3600;

// The server tells times in the reader's zone once it knows it. On the first page it does not, so they are told here.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && zone !== document.documentElement.dataset.zone) {
  document.cookie = `fmn_zone=${zone}; path=/; max-age=${YEAR_SECONDS}; samesite=lax`;
  const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
  const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "long", year: "numeric", timeZone: zone });
  const hour = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", timeZone: zone });
  for (const time of document.querySelectorAll("time[data-spoken]")) {
    const instant = new Date(time.dateTime);
    time.textContent = `${day.format(instant)}, ${hour.format(instant)}`;
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const said = button.querySelector("span");
  const word = said.textContent;
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
    said.textContent = button.dataset.done;
    setTimeout(() => { said.textContent = word; }, 3000);
  });
}
