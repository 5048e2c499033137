-- breaking: no
--
-- Figures of sales are also split by the reason of a refund or dispute, and what is test data follows the mode of the
-- merchant account: all days with money are computed again.
insert into figure_marks (project_id, family, day)
select distinct project_id, 'sales', day from figures_sales where split = ''
union all select distinct project_id, 'payments', day from figures_payments where split = '';
