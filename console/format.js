// Sizes, times and rates as dfcctl prints them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// 1536 is "1.5 KiB"; unknown is "–".
export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits).replace(/\.0$/, "")} ${UNITS[unit]}`;
}

export function count(value) {
  return Number.isFinite(value) ? value.toLocaleString("en-US") : "–";
}

export function percent(part, whole) {
  if (!(whole > 0)) return "–";
  const value = 100 * part / whole;
  return `${value > 0 && value < 1 ? value.toFixed(1) : Math.round(value)} %`;
}

// 3725000 is "1 h 2 min".
export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
  for (let i = 0; i < units.length; i++) {
    const [size, name] = units[i];
    if (ms < size) continue;
    const whole = `${Math.floor(ms / size)} ${name}`;
    if (i + 1 === units.length) return whole;
    const rest = Math.floor(ms % size / units[i + 1][0]);
    return rest > 0 ? `${whole} ${rest} ${units[i + 1][1]}` : whole;
  }
  return ms === 0 ? "0 s" : `${Math.round(ms)} ms`;
}

export function pad(number, digits = 2) {
  return String(number).padStart(digits, "0");
}

// In the user's zone; utc() is for the tooltip.
export function time(ms) {
  if (!(ms > 0)) return "–";
  const t = new Date(ms);
  return `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ` +
    `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
}

export function utc(ms) {
  return ms > 0 ? new Date(ms).toISOString() : "";
}

export function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many ?? one + "s"}`;
}
