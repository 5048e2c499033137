-- breaking: no
--
-- One refund of ours in progress an order. Refunds that were found at the provider are recorded beside it: they exist there
-- already.
drop index refunds_in_progress;
create unique index refunds_in_progress on refunds (organization_id, order_id) where status = 'processing' and not is_adopted;

-- Whether news of it came while a process held it: that process may have asked the provider before, so the next look is at once.
alter table orders add column has_news boolean not null default false;
alter table refunds add column has_news boolean not null default false;
