"""Statements that are no queries, over named windows and tables.

declaring            create window, create table, create variable
triggered            what all triggers have in common
on_change            on … delete, update and merge; split streams
on_select, on_set    on … select; on … set
acting_code          the maker of each
view                 a relation as programs read it
"""
