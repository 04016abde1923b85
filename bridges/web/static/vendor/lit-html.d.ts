// The few names of lit-html that the pages use.
export const html: (strings: TemplateStringsArray, ...values: unknown[]) => unknown;
export const nothing: symbol;
export const render: (value: unknown, container: Element) => unknown;
export const repeat: <T>(items: Iterable<T>, key: (item: T, index: number) => unknown, template: (item: T, index: number) => unknown) => unknown;
export const svg: (strings: TemplateStringsArray, ...values: unknown[]) => unknown;
