-- breaking: no
--
-- Figures of subscriptions get the movement of the MRR and the reason of the end, those of sales, sessions and payments the hour: more
-- values of the same columns, for which all days are computed again.
insert into figure_marks (project_id, family, day) select id, 'all', current_date from projects;
