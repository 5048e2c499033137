-- breaking: no
--
-- What an erasure's target at the provider is. Providers differ in the forms of their ids, so that the id alone does not tell.
-- Null: queued by a program that did not store it yet; then the target has one of the forms of Stripe's ids.
alter table provider_erasures add column target_kind text check (target_kind in ('customer', 'card', 'payment'));
