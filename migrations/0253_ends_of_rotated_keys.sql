-- breaking: no
--
-- A key that is rotated ends with the overlap. Its successor ends when the key was to end before, also the successor of a second rotation
-- during the overlap, as when the text of the first successor is lost.
alter table secret_keys
  -- When a rotated key was to end: infinity if never. Null if it was not rotated.
  add column own_expires_at timestamptz;
