// `console` in a component, which QuickJS lacks. Its lines go to the host's log.

import { debug, error, info, textOf, trace, warn } from "./log.js";

declare global {
  interface Console {
    debug(...values: unknown[]): void;
    error(...values: unknown[]): void;
    info(...values: unknown[]): void;
    log(...values: unknown[]): void;
    trace(...values: unknown[]): void;
    warn(...values: unknown[]): void;
  }
  var console: Console;
}

function line(write: (message: string) => void): (...values: unknown[]) => void {
  return (...values) => write(values.map(textOf).join(" "));
}

globalThis.console ??= {
  debug: line(debug),
  error: line(error),
  info: line(info),
  log: line(info),
  trace: line(trace),
  warn: line(warn),
} as Console;
