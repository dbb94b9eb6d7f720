import Type from 'typebox';
import { closed, Timestamp, type Wire } from './shape.ts';

export const EventTicketSchema = Type.Object(
  {
    ticket: Type.String({ description: 'A secret that opens one stream, once.' }),
    url: Type.String({ description: 'The path of the stream, with the ticket.' }),
    expiresAt: Timestamp,
  },
  { $id: 'EventTicket', ...closed },
);
export type EventTicket = Wire<typeof EventTicketSchema>;
