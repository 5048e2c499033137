-- breaking: no
--
-- During an upgrade, and after a way back, entries of credits may be written by a program from before migration 175, which does not know
-- their project and their stamp. The next newer program adds both, so that syncs get them.
alter table credit_entries alter column project_id drop not null, alter column updated_at drop not null;
