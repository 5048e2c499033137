-- breaking: no
--
-- Amounts in US dollars that were imported without `price_usd` or `amount_usd` count in figures in US dollars, and amounts of 0
-- are no longer counted as without a value in US dollars. Only the days with such amounts are computed again.
insert into figure_marks (project_id, family, day)
select distinct project_id, 'sales', day from figures_sales where split = '' and without_usd > 0
union all
select distinct project_id, 'subscriptions', day from figures_subscriptions
where split = '' and currency = 'USD' and mrr <> mrr_usd;
