// The digest of yesterday as it would be sent now.
import { hideSecrets } from '../../../lib/hide-secrets.ts'
import { digestContent } from '../../alerts/digest.ts'
import { readState } from '../../alerts/state.ts'
import { html } from '../html.ts'
import { noProject, type Page } from '../shell.ts'
import { projectOf, type View } from '../view.ts'

export async function digest(view: View): Promise<Page> {
  const title = 'Digest'
  if (!view.project) return { title, body: noProject(view) }
  const state = await readState(view.app.db, projectOf(view).id)
  const content = await digestContent(view.app, state!)
  return {
    title,
    actions: html`<a href="${view.href('/alerts')}">Back to alerts</a>`,
    question:
      'What does the morning digest say? This is that of yesterday with the figures of now. Looking at it sends nothing.',
    body: html`<section><h2>${content.title}</h2>
        <ul>${content.lines.map((line) => html`<li>${hideSecrets(line)}</li>`)}</ul>
        <p><a href="${view.href('/', { from: state!.yesterday, to: state!.yesterday })}">The day on the dashboard</a></p></section>`,
  }
}
