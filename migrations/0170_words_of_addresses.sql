-- breaking: no
--
-- Finds people by the beginning of a word of their e-mail address: each word before the @, with the project in front of it, so that
-- one project's words are not read for another's. Text search is part of PostgreSQL; no extension is needed.
create index profiles_by_words on profiles using gin (
  array_to_tsvector(string_to_array(
    project_id || ' ' || regexp_replace(split_part(email_folded, '@', 1), '[._+-]+', E'\n' || project_id || ' ', 'g'), E'\n')));
