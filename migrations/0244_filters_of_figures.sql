-- breaking: no
--
-- Figures of years that are filtered by the second dimension of a split, or of customers by their campaign: the primary keys have the
-- day first, so that every value of each day was read.
create index figures_sales_by_subkey on figures_sales (project_id, split, subkey, day);
create index figures_visits_by_subkey on figures_visits (project_id, split, subkey, day);
create index figures_subscriptions_by_subkey on figures_subscriptions (project_id, split, subkey, day);
drop index figures_worth_by_cohort;
create index figures_worth_by_cohort on figures_worth (project_id, split, base, cohort, key);
