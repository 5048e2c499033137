-- breaking: no
--
-- Figures of subscriptions: one that is first paid for after its end ends with this payment, so that the MRR is not below zero in between.
insert into figure_marks (project_id, family, day) select distinct project_id, 'subscriptions', day from figures_subscriptions;
