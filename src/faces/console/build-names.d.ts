/** The name of the page in which the HTML of outputs is shown. The build inserts it. */
declare const FRAME_PAGE: string;
/** The name of the file with the pictures of the statecharts. The build inserts it. */
declare const CHART_PICTURES: string;

declare module '*.css';
