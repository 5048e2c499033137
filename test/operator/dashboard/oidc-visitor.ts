// A visitor with cookies and without a browser, who signs in at the provider of the tests.
export interface Response {
  status: number
  url: URL
  body: string
}

/** Follows redirects, also those of pages with `Refresh`, as a browser does. `headers` are those that a proxy adds for Tundish. */
export function openVisitor(headers: Record<string, string> = {}, { keepsCookies = true } = {}) {
  // By host, name and path.
  const cookies = new Map<string, { pair: string; path: string }>()

  async function once(
    url: URL,
    form?: Record<string, string>,
    from?: URL,
  ): Promise<{ next: URL | undefined } & Response> {
    const sent = [...cookies].filter(
      ([key, { path }]) => key.startsWith(`${url.host} `) && url.pathname.startsWith(path),
    )
    const response = await fetch(url, {
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
      // Browsers name the page that a redirect began on.
      headers: {
        ...headers,
        ...(from?.origin === url.origin && { referer: from.href }),
        origin: url.origin,
        cookie: sent.map(([, { pair }]) => pair).join('; '),
      },
      redirect: 'manual',
    })
    for (const line of keepsCookies ? response.headers.getSetCookie() : []) {
      const [pair, name] = /^([^=]+)=[^;]*/.exec(line)!
      const path = /; path=([^;]+)/i.exec(line)?.[1] ?? '/'
      cookies.set(`${url.host} ${name} ${path}`, { pair, path })
      if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) cookies.delete(`${url.host} ${name} ${path}`)
    }
    const to = response.headers.get('location') ?? response.headers.get('refresh')?.replace(/^0; url=/, '')
    return { status: response.status, url, body: await response.text(), next: to ? new URL(to, url) : undefined }
  }

  async function go(
    address: string | URL,
    form?: Record<string, string>,
    until = (_url: URL) => false,
  ): Promise<Response> {
    const page = form && new URL(address)
    let shown = await once(new URL(address), form, page)
    while (shown.next && !until(shown.next)) shown = await once(shown.next, undefined, page)
    return shown.next ? { ...shown, url: shown.next } : shown
  }

  return {
    go,
    /** The cookie of this name, as it is sent to the origin. */
    cookie: (origin: string, name: string) =>
      [...cookies].find(([key]) => key.startsWith(`${new URL(origin).host} ${name} `))![1].pair,
    /** Sends the cookies of an origin to another one, as browsers do where only the port differs. */
    share(from: string, to: string): void {
      for (const [key, cookie] of [...cookies])
        if (key.startsWith(`${new URL(from).host} `))
          cookies.set(key.replace(new URL(from).host, new URL(to).host), cookie)
    },
    /** Opens a page and goes on to the provider: returns its form. */
    begin: (origin: string, to = '/') => go(`${origin}/sign-in/oidc?${new URLSearchParams({ to })}`),
    /** Sends the provider's forms; returns what comes of it, or the address of the way back with `stopBefore`. */
    async submit(form: Response, login: string, stopBefore?: string): Promise<Response> {
      let shown = form
      const isBack = (url: URL) => stopBefore !== undefined && url.pathname === stopBefore
      while (!isBack(shown.url)) {
        const action = /<form[^>]* action="([^"]+)"/.exec(shown.body)?.[1]
        const prompt = /name="prompt" value="([^"]+)"/.exec(shown.body)?.[1]
        if (!action || !prompt) break
        shown = await go(new URL(action, shown.url), { prompt, login, password: 'any' }, isBack)
      }
      return shown
    },
  }
}
