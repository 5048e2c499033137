-- breaking: no
--
-- Figures of experiments: only payers count as refunded, and refunds and chargebacks without a value are counted.
insert into figure_marks (project_id, family, day) select distinct project_id, 'experiments', day from figures_experiments;
