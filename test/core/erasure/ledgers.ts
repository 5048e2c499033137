// Erasures of people and lines of ledgers, for tests of them.
import { readFileSync } from 'node:fs'
import type { Project } from '../../support/server.ts'

export interface Entry {
  project_id: string
  profile_id: string
  erased_at: string
}

export const read = (path: string): Entry[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
export const people = (...ids: string[]) => ({ profiles: ids.map((id) => ({ id, email: `${id}@example.com` })) })
export const erase = (project: Project, ...profile_ids: string[]) =>
  project.post('/profiles/anonymize', { profile_ids })
export const emailOf = async (project: Project, id: string) => (await project.get(`/profiles/${id}`)).body.email
