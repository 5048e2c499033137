-- breaking: no
--
-- Finds people by any part of their e-mail address before the @: by the three letters at each place of its words, with the project in
-- front of them, so that one project's people are not read for another's. It is an index of the row itself, so nothing of it stays when
-- the address is erased. Text search is part of PostgreSQL; no extension is needed.

-- What is searched: at most 64 characters, without accents.
create function searched_address(address text) returns text language sql immutable parallel safe
  return regexp_replace(normalize(left(split_part(address, '@', 1), 64), NFD), '[\u0300-\u036f]', '', 'g');

create function parts_of_address(project text, address text) returns tsvector language sql immutable parallel safe
  return (
    select array_to_tsvector(array_agg(distinct project || ' ' || substr(word, place, 3)))
    from unnest(string_to_array(translate(searched_address(address), '._+-', '    '), ' ')) word
    cross join generate_series(1, length(word) - 2) place);

create index profiles_by_parts on profiles using gin (parts_of_address(project_id, email_folded)) where email_folded is not null;
drop index profiles_by_words;
