-- breaking: no
--
-- Figures of sales: one without a subscription has the provider of its payment, and what goes back has the product of its payment.
insert into figure_marks (project_id, family, day) select id, 'all', current_date from projects;
