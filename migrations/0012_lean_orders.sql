-- breaking: no
--
-- A charge pays for each reference that PostgreSQL looks up for it, and the project's row is locked by each. What is left
-- out here is seen to elsewhere.

-- An order's project is one of its organization's, which another reference sees to.
alter table orders drop constraint orders_organization_id_fkey;

-- Events are written in the transaction of what they tell of, which refers to the project by itself.
alter table events drop constraint events_project_id_fkey;
